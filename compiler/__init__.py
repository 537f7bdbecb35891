"""The compiler: tensor expressions, loop IR, script, schedule, passes, code generation, runtime."""
