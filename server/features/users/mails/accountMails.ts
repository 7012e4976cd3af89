import type { User } from "../../../db/generated/sqlite/client.ts";
import type { Mail } from "../../../mail/mail.ts";
import type { Services } from "../../../services.ts";
import { mailedLink } from "../../outbox/links.ts";
import type { AccountPurpose, AccountRequest } from "../../outbox/outbox.ts";
import { findUser } from "../login.ts";
import { mfaResetMails } from "../mfa/mfaReset.ts";
import { createToken } from "./mailTokens.ts";

const NOT_YOU = "If you did not request this, ignore this mail.\n";

const MAILS: Record<AccountPurpose, (services: Services, account: string) => Promise<readonly Mail[]>> = {
  activation: activationMails,
  recovery: recoveryMails,
  mfaReset: mfaResetMails,
};

/**
 * Returns the requested mails, with new tokens. The list is empty if the account does not exist or is not eligible.
 * Activation requires an unconfirmed account, recovery requires a local account with a password, and a reset requires
 * an account with MFA.
 */
export function accountMails(
  services: Services,
  { purpose, account }: AccountRequest,
): Promise<readonly Mail[]> {
  return MAILS[purpose](services, account);
}

// Mails never contain text that an attacker may have written, such as a name. Such a text would appear to come from the
// service.

async function activationMails(services: Services, account: string): Promise<Mail[]> {
  const user = await findUser(services, account);
  if (user?.status !== "not-confirmed") return [];
  const token = await createToken(services, user.id, "activation");
  const link = mailedLink(services, "/validation-account", { email: user.email, token });
  return mailTo(
    user,
    "Confirm your account",
    `An account was created with this address. To confirm it, open this link within 24 hours:\n\n${link}\n\n${NOT_YOU}`,
  );
}

async function recoveryMails(services: Services, account: string): Promise<Mail[]> {
  const user = await findUser(services, account);
  if (user?.status !== "confirmed" || user.origin !== "local") return [];
  const token = await createToken(services, user.id, "recovery");
  const link = mailedLink(services, "/update-password", { id: user.id, token });
  return mailTo(
    user,
    "Set a new password",
    `To set a new password for your account, open this link within 24 hours:\n\n${link}\n\n${NOT_YOU}`,
  );
}

const mailTo = ({ email }: User, subject: string, text: string): Mail[] => [{ to: email, subject, text }];
