import { z } from "zod";
import { membershipEnd } from "./namespaces.ts";
import { defineOperation } from "./operation.ts";
import { email, model, role, tenantId, userId } from "./schemas.ts";

const sig = z.string().min(1).max(256).describe("Value from the invitation link");

export const invitationLink = model(
  "InvitationLink",
  "Link with which a user accepts an invitation",
  z.object({ link: z.string() }),
);

export const userStatus = model(
  "UserStatus",
  "Status of an invited user: without an account, with an account that is not confirmed, or with a " +
    "confirmed account",
  z.object({ status: z.enum(["invited", "not-confirmed", "confirmed"]) }),
);

export const generateInvitationLink = defineOperation({
  id: "generateInvitationLink",
  part: "Namespaces and members",
  summary:
    "Invite a user, and return the link instead of sending it by mail. A new link invalidates the " +
    "previous link. In editions other than `cloud`, a user with an account becomes a member immediately",
  method: "POST",
  path: "/api/namespaces/{tenant}/members/invites",
  edition: "enterprise",
  auth: ["jwt"],
  scope: "path",
  object: "member",
  creates: true,
  minRole: "administrator",
  params: { tenant: tenantId },
  body: z.object({ email, role, access_expires_at: membershipEnd }),
  success: { body: invitationLink },
  errors: {
    400: "`email` or `role` missing or invalid, or `access_expires_at` not in the future",
    403: "role below `administrator`, the requested role is `owner` or above the caller's role, 100 invitations are open, or called with an API key",
    404: "namespace unknown",
    409: "already a member",
  },
});

export const lookupUserStatus = defineOperation({
  id: "lookupUserStatus",
  part: "Namespaces and members",
  summary: "Get the status of an invited user. The invitation link authorizes the request",
  method: "GET",
  path: "/api/namespaces/{tenant}/members/{id}/accept-invite",
  edition: "cloud",
  auth: ["none"],
  scope: "public",
  params: { tenant: tenantId, id: userId },
  query: { sig },
  limit: { kind: "login" },
  success: { body: userStatus },
  errors: { 403: "`sig` wrong", 404: "namespace or user unknown, or the user has no open invitation" },
});

export const acceptInvite = defineOperation({
  id: "acceptInvite",
  part: "Authentication and users",
  summary: "Accept an invitation as the invited user",
  method: "PATCH",
  path: "/api/namespaces/{tenant}/members/accept-invite",
  edition: "cloud",
  auth: ["jwt"],
  scope: "user",
  params: { tenant: tenantId },
  body: z.object({ sig }),
  errors: {
    400: "`sig` missing",
    403: "`sig` wrong or from the invitation of another user, or called with an API key",
    404: "namespace or pending member unknown, or invitation expired",
  },
});
