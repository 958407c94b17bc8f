"""Entry point of `python -m sysdock`."""

from sysdock.cli import main

if __name__ == "__main__":
    main()
