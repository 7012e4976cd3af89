import { z } from "zod";
import { setting } from "./setting.ts";
import { isPostgresql, wholeNumber } from "./values.ts";

/** Settings of the database, and of the secret that seals its content. */
export const databaseSettings = {
  databaseUrl: setting({
    variable: "GATEHOUSE_DATABASE_URL",
    flag: "--database-url",
    value: "url",
    about:
      "Database, when it is not the file gatehouse.db in the data folder: file:<path> of a SQLite file, or " +
      "postgresql://user@host/name, which several instances may share",
    allowed: "file:<path> of a SQLite file, or postgresql://[user[:password]@]host[:port]/name",
    secret: true,
    refusedAsFlag: (text) => {
      return URL.canParse(text) && new URL(text).password !== ""
        ? "a password on the command line can be read by every user of the machine"
        : undefined;
    },
    schema: z
      .string()
      .refine((text) => /^file:[^?]+$/.test(text) || isPostgresql(text))
      .optional(),
  }),
  databaseConnections: setting({
    variable: "GATEHOUSE_DATABASE_CONNECTIONS",
    flag: "--database-connections",
    value: "number",
    about: "Most connections to a PostgreSQL database that this process opens",
    allowed: "a whole number from 2 to 1000",
    fallback: "10",
    schema: wholeNumber.refine((count) => count >= 2 && count <= 1000),
  }),
  secret: setting({
    variable: "GATEHOUSE_SECRET",
    value: "text",
    about:
      "Secret that seals the signing keys and the MFA secrets in the database: the same for all instances on one " +
      "database. Left out: the file `secret` in the data folder, made at the first start. Back it up with the database",
    allowed: "a text of 32 characters at least, as `openssl rand -base64 32` makes one",
    secret: true,
    schema: z.string().min(32).max(1024).optional(),
  }),
};
