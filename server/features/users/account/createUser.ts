import { randomBytes } from "node:crypto";
import { insertRows } from "../../../db/sql/rows.ts";
import type { Transaction } from "../../../db/sql/transaction.ts";
import { ConflictError, isDatabaseError } from "../../../errors.ts";
import { DUMMY_HASH, hashPassword } from "../../../secrets/passwords.ts";
import type { Services, SqlServices } from "../../../services.ts";

interface NewUser {
  readonly name: string;
  readonly username: string;
  readonly email: string;
  readonly password: string;
  /** Maximum number of namespaces that the user can own. -1 allows any number. @default -1 */
  readonly maxNamespaces?: number;
  /** The system that authenticates the user (models section 1). @default `local` */
  readonly origin?: "local" | "SAML";
}

/** Returns the id for a new user: 24 lower-case hex characters (models section 0). */
export const newUserId = (): string => randomBytes(12).toString("hex");

/**
 * Adds a confirmed user. The username and the e-mail address are stored in lower case. This function does not validate
 * the values.
 * @throws ConflictError the username or the e-mail address is already used
 */
export async function createUser(services: Services, user: NewUser): Promise<{ id: string }> {
  return insertUser(services, services.db, user, await hashPassword(user.password));
}

/**
 * Adds a user in a transaction, like {@link createUser}. The caller hashes the password before the transaction begins.
 */
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
    if (isDatabaseError(error, "P2002"))
      throw new ConflictError(
        "username or email: another user has this name or address; choose a different one",
      );
    throw error;
  }
}

/**
 * Adds a user with the status `invited` for an e-mail address that no other user has. The user can log in after
 * registration.
 * @param email in lower case
 * @returns the user's id
 */
export async function insertInvited({ db, now }: SqlServices, email: string): Promise<string> {
  const id = newUserId();
  const user = {
    id,
    status: "invited",
    name: "",
    // No user can choose this username, because usernames cannot contain a colon.
    username: `invited:${id}`,
    email,
    passwordHash: DUMMY_HASH,
    createdAt: now(),
  };
  await insertRows(db, "User", [user]);
  return id;
}
