"""The text of graphs, in the spelling of Relax: a printer, and a parser that executes nothing."""
