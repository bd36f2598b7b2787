"""Ways through time: of the joints and of the tool, and whether an arm can follow them."""
