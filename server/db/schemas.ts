import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The databases that the service is made for; both share the models of `models.prisma`. */
export const databases = ["sqlite", "postgresql"] as const;

export type DatabaseName = (typeof databases)[number];

const folder = import.meta.dirname;

/** The whole Prisma schema of one database: its header and the shared models. */
export function schemaOf(database: DatabaseName): string {
  const header = readFileSync(join(folder, `${database}.prisma`), "utf8");
  const models = readFileSync(join(folder, "models.prisma"), "utf8");
  return `${header}\n${models}`;
}
