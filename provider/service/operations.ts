import { newerOperations } from "@gatehouse-access/sdk";
import { operations } from "@gatehouse-access/sdk/contract";

/** The operations of this project's service and of newer servers, by id. */
export const allOperations = { ...operations, ...newerOperations };

/** Id of an operation (docs/reference/operations.md). */
export type OperationId = keyof typeof allOperations;
