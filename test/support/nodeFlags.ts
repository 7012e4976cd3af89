/**
 * Flags of Node for a process that serves for seconds: WebAssembly (Prisma's query compiler) is compiled once, quickly,
 * and not anew for the speed of later hours, which takes a quarter of such a process's CPU time.
 */
export const SHORT_LIVED = ["--liftoff-only"];
