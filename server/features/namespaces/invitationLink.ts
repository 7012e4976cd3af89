import { findRow } from "../../db/sql/rows.ts";
import type { Mail } from "../../mail/mail.ts";
import type { SqlServices } from "../../services.ts";
import { linkAt, mailedLink } from "../outbox/links.ts";
import type { CreatedInvitation } from "./invitations.ts";

const PAGE = "/accept-invite";

const parametersOf = ({ member, sig }: CreatedInvitation, email: string) => ({
  "tenant-id": member.tenantId,
  "user-id": member.userId,
  email,
  sig,
});

/** Returns a link to the page that accepts an invitation, at the given origin (rules section 12.1). */
export const invitationLink = (origin: string, invitation: CreatedInvitation, email: string): string =>
  linkAt(origin, PAGE, parametersOf(invitation, email));

export async function invitationMail(
  services: SqlServices,
  invitation: CreatedInvitation,
  email: string,
): Promise<Mail> {
  const { tenantId, role } = invitation.member;
  const namespace = await findRow(services.db, "Namespace", { tenantId });
  const name = namespace?.name ?? "";
  const link = mailedLink(services, PAGE, parametersOf(invitation, email));
  return {
    to: email,
    subject: `Invitation to the namespace ${name}`,
    text:
      `You are invited to the namespace "${name}", with the role ${role}. To accept, open this link within 7 days:` +
      `\n\n${link}\n\nIf you do not want to accept, ignore this mail.\n`,
  };
}
