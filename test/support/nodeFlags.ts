/**
 * Flags of Node.js for a short-lived process. WebAssembly (Prisma's query compiler) is compiled once, quickly, and not
 * optimized later, which takes a quarter of such a process's CPU time.
 */
export const SHORT_LIVED = ["--liftoff-only"];
