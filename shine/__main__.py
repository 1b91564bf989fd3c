"""``python -m shine``."""

from shine.faces.cli import main

if __name__ == "__main__":
    main()
