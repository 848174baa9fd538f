"""The proof of the locks: workers that use them under misfortunes, and a judge of what they say they did."""
