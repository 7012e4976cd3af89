import { randomBytes } from "node:crypto";
import { insertRows } from "../../../db/sql/rows.ts";
import type { Transaction } from "../../../db/sql/transaction.ts";
import { ConflictError, isDatabaseError } from "../../../errors.ts";
import { DUMMY_HASH, hashPassword } from "../../../secrets/passwords.ts";
import type { Services, SqlServices } from "../../../services.ts";

export interface NewUser {
  readonly name: string;
  readonly username: string;
  readonly email: string;
  readonly password: string;
  /** How many namespaces the user may own; -1: any number. @default -1 */
  readonly maxNamespaces?: number;
  /** Where the user authenticates (models section 1). @default `local` */
  readonly origin?: "local" | "SAML";
}

/** Id of a new user: 24 lower-case hex characters (models section 0). */
export const newUserId = (): string => randomBytes(12).toString("hex");

/**
 * Adds a confirmed user. Username and e-mail are stored in lower case; values are not checked here.
 * @throws ConflictError username or e-mail is taken
 */
export async function createUser(services: Services, user: NewUser): Promise<{ id: string }> {
  return insertUser(services, services.db, user, await hashPassword(user.password));
}

/** As {@link createUser}, as a part of a transaction, which must not wait for the hashing of the password. */
export async function insertUser(
  services: Services,
  tx: Transaction,
  user: NewUser,
  passwordHash: string,
): Promise<{ id: string }> {
  try {
    return await tx.user.create({
      data: {
        id: newUserId(),
        origin: user.origin ?? "local",
        name: user.name,
        username: user.username.toLowerCase(),
        email: user.email.toLowerCase(),
        passwordHash,
        maxNamespaces: user.maxNamespaces ?? -1,
        createdAt: services.now(),
      },
      select: { id: true },
    });
  } catch (error) {
    if (isDatabaseError(error, "P2002")) throw new ConflictError("username or email is taken");
    throw error;
  }
}

/**
 * Adds a user who was invited by an e-mail address that nobody had. The user can log in after registering.
 * @param email in lower case
 * @returns the user's id
 */
export async function insertInvited({ db, now }: SqlServices, email: string): Promise<string> {
  const id = newUserId();
  const user = {
    id,
    status: "invited",
    name: "",
    // No username has a colon.
    username: `invited:${id}`,
    email,
    passwordHash: DUMMY_HASH,
    createdAt: now(),
  };
  await insertRows(db, "User", [user]);
  return id;
}
