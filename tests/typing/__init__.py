"""Type checkers on the code of a project that uses the package."""
