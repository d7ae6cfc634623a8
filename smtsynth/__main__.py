"""`python -m smtsynth`."""

from smtsynth.interfaces.cli import main

if __name__ == "__main__":
    main()
