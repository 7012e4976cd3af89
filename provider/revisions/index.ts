export { commitOf, openRepository, type Repository } from "./repository.ts";
export { type RevisionProgram, revisionProgram, serviceDifferences } from "./revisionProgram.ts";
