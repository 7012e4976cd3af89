import { clientVariables, type UnknownVariable, unknownVariables } from "@gatehouse-access/sdk/errors";
import { Command } from "commander";
import { settings } from "./settings.ts";

const own: readonly string[] = Object.values(settings).flatMap(({ variable, secret }) =>
  secret ? [variable, `${variable}_FILE`] : [variable],
);

/** The names of all variables that a program of the project reads. */
export const knownVariables: ReadonlySet<string> = new Set([
  ...own,
  // `gatehouse-server migrate-to-postgresql`
  "GATEHOUSE_TARGET_DATABASE_URL",
  "GATEHOUSE_TARGET_DATABASE_URL_FILE",
  // Include the variables of clients, because clients may have the same environment as the service.
  ...clientVariables,
]);

/**
 * Returns the variables that have the prefix of settings but that no program of the project reads.
 * @param names names of all variables of the environment
 */
export const unknownSettings = (names: readonly string[]): readonly UnknownVariable[] =>
  unknownVariables(names, knownVariables, own, () => new Command());
