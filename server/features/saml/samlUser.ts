import { randomBytes } from "node:crypto";
import { email as emailAddress, username } from "@gatehouse-access/sdk/contract";
import { recordChange } from "../../changes/recordChange.ts";
import type { User } from "../../db/generated/sqlite/client.ts";
import { inTransaction, type Transaction, within } from "../../db/sql/transaction.ts";
import { ForbiddenError } from "../../errors.ts";
import type { RequestFacts } from "../../http/listener/requestFacts.ts";
import { DUMMY_HASH } from "../../secrets/passwords.ts";
import type { Services } from "../../services.ts";
import type { SamlSettings } from "../../settings/readConfig.ts";
import { insertUser } from "../users/account/createUser.ts";
import { actingUser } from "../users/callingUser.ts";

/** A user as described by the identity provider. */
interface Person {
  readonly nameId: string;
  readonly email: string;
  readonly name: string;
}

/**
 * Returns the user that the identity provider describes. The first login creates a confirmed user without a password or
 * namespace. If an existing user has the same e-mail address, the login is rejected unless the setting `samlLinkUsers`
 * allows it. Otherwise, an attacker who can set any address at the identity provider would gain access to the existing
 * account.
 * @throws ForbiddenError an existing user has the e-mail address, or the user is not confirmed
 */
export function samlUser(
  services: Services,
  settings: SamlSettings,
  person: Person,
  request: RequestFacts,
): Promise<User> {
  const key = { issuer: settings.idpEntityId, nameId: person.nameId };
  return inTransaction(services, async (tx) => {
    const known = await tx.samlIdentity.findUnique({
      where: { issuer_nameId: key },
      include: { user: true },
    });
    if (known) return confirmed(known.user);
    const sameEmail = await tx.user.findUnique({ where: { email: person.email } });
    if (sameEmail && !settings.linkUsers)
      throw new ForbiddenError(
        `the e-mail address ${person.email} belongs to a user with a different login method`,
      );
    const user = sameEmail ? confirmed(sameEmail) : await newUser(services, tx, person);
    await tx.samlIdentity.create({ data: { ...key, userId: user.id } });
    await recordFirstLogin(within(services, tx), user, key.issuer, request);
    return user;
  });
}

function confirmed(user: User): User {
  if (user.status !== "confirmed") throw new ForbiddenError("the account is not confirmed yet");
  return user;
}

async function newUser(services: Services, tx: Transaction, { email, name }: Person): Promise<User> {
  const fits = username.safeParse(email).success;
  const taken = fits && (await tx.user.findUnique({ where: { username: email }, select: { id: true } }));
  const free = fits && !taken ? email : `saml-${randomBytes(6).toString("hex")}`;
  const user = { name, username: free, email, password: "", origin: "SAML" } as const;
  const { id } = await insertUser(services, tx, user, DUMMY_HASH);
  return tx.user.findUniqueOrThrow({ where: { id } });
}

async function recordFirstLogin(
  services: Services,
  user: User,
  issuer: string,
  request: RequestFacts,
): Promise<void> {
  const { id, username, email, origin } = user;
  await recordChange(services, {
    tenantId: null,
    caller: actingUser(user),
    request,
    operation: "samlLogin",
    object: { kind: "user", id },
    before: null,
    after: { username, email, origin, saml_issuer: issuer },
  });
}

/**
 * Returns the person that an assertion describes. Returns undefined if the assertion contains no valid e-mail address.
 * @param attributes by name
 */
export function personOf(
  { emailAttribute, nameAttribute }: SamlSettings,
  nameId: string,
  attributes: ReadonlyMap<string, string>,
): Person | undefined {
  const email = (attributes.get(emailAttribute) ?? nameId).toLowerCase();
  if (!emailAddress.safeParse(email).success) return undefined;
  const name = attributes.get(nameAttribute) ?? email;
  return { nameId, email, name: name.slice(0, 64) };
}
