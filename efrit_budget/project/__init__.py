"""Files of the project and the programs that read them."""
