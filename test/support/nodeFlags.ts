/**
 * Flags of Node.js for a short process. With these flags, Node.js compiles WebAssembly (Prisma's query compiler) only
 * with its fast compiler. The optimizing compiler would take a quarter of the process's CPU time.
 */
export const SHORT_LIVED = ["--liftoff-only"];
