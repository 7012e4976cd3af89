/**
 * Flags of Node.js for a short-lived process. They compile WebAssembly (Prisma's query compiler) once, quickly. Its
 * later optimization would take a quarter of such a process's CPU time.
 */
export const SHORT_LIVED = ["--liftoff-only"];
