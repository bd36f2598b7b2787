"""Motors of several makers, written from their data sheets and apart from the drivers."""
