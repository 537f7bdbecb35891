"""Operations on values: sequences of instructions that know no node of the IR."""
