import type { User } from "../../../db/generated/sqlite/client.ts";
import type { Mail } from "../../../mail/mail.ts";
import type { Services } from "../../../services.ts";
import { mailedLink } from "../../outbox/links.ts";
import type { AccountPurpose, AccountRequest } from "../../outbox/outbox.ts";
import { findUser } from "../login.ts";
import { mfaResetMails } from "../mfa/mfaReset.ts";
import { makeToken } from "./mailTokens.ts";

const NOT_YOU = "If you did not ask for this, leave this mail alone: nothing happens then.\n";

const MAILS: Record<AccountPurpose, (services: Services, account: string) => Promise<readonly Mail[]>> = {
  activation: activationMails,
  recovery: recoveryMails,
  mfaReset: mfaResetMails,
};

/**
 * The requested mails, with new tokens. None if the account does not exist or is not eligible: activation needs an
 * unconfirmed account, recovery one with its own password, and a reset one with MFA.
 */
export function accountMails(
  services: Services,
  { purpose, account }: AccountRequest,
): Promise<readonly Mail[]> {
  return MAILS[purpose](services, account);
}

// No mail repeats text that a stranger may have written, such as a name: it would speak with the service's voice.

async function activationMails(services: Services, account: string): Promise<Mail[]> {
  const user = await findUser(services, account);
  if (user?.status !== "not-confirmed") return [];
  const token = await makeToken(services, user.id, "activation");
  const link = mailedLink(services, "/validation-account", { email: user.email, token });
  return mailTo(
    user,
    "Confirm your account",
    `An account was made with this address. To confirm it, open this link within 24 hours:\n\n${link}\n\n${NOT_YOU}`,
  );
}

async function recoveryMails(services: Services, account: string): Promise<Mail[]> {
  const user = await findUser(services, account);
  if (user?.status !== "confirmed" || user.origin !== "local") return [];
  const token = await makeToken(services, user.id, "recovery");
  const link = mailedLink(services, "/update-password", { id: user.id, token });
  return mailTo(
    user,
    "Set a new password",
    `To set a new password for your account, open this link within 24 hours:\n\n${link}\n\n${NOT_YOU}`,
  );
}

const mailTo = ({ email }: User, subject: string, text: string): Mail[] => [{ to: email, subject, text }];
