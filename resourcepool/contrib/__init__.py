"""What few projects need, such as drop-in replacements for other libraries; nothing of the package imports it."""
