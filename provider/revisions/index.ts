export { commitOf, openRepository, type Repository } from "./repository.ts";
export { type RevisionProgram, revisionProgram } from "./revisionProgram.ts";
export { serviceDifferences } from "./serviceDifferences.ts";
