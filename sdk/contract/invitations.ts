import { z } from "zod";
import { defineOperation } from "./operation.ts";
import { email, model, role, tenantId, userId } from "./schemas.ts";

const sig = z.string().min(1).max(256).describe("From the invitation's link");

export const invitationLink = model(
  "InvitationLink",
  "Where a user accepts an invitation",
  z.object({ link: z.string() }),
);

export const userStatus = model(
  "UserStatus",
  "How far an invited user has come: without an account, with one that is not confirmed, or with one",
  z.object({ status: z.enum(["invited", "not-confirmed", "confirmed"]) }),
);

export const generateInvitationLink = defineOperation({
  id: "generateInvitationLink",
  part: "Namespaces and members",
  summary:
    "Invite a user and get the link instead of a mail; a new link makes the earlier one void. Below the cloud edition " +
    "a user with an account is a member at once",
  method: "POST",
  path: "/api/namespaces/{tenant}/members/invites",
  edition: "enterprise",
  auth: ["jwt"],
  scope: "path",
  object: "member",
  creates: true,
  minRole: "administrator",
  params: { tenant: tenantId },
  body: z.object({ email, role }),
  success: { body: invitationLink },
  errors: {
    400: "email or role missing or invalid",
    403: "role below administrator, asked role is owner or above the caller's, 100 invitations are open, or called with an API key",
    404: "namespace unknown",
    409: "already a member",
  },
});

export const lookupUserStatus = defineOperation({
  id: "lookupUserStatus",
  part: "Namespaces and members",
  summary: "How far an invited user has come, for whoever holds the invitation's link",
  method: "GET",
  path: "/api/namespaces/{tenant}/members/{id}/accept-invite",
  edition: "cloud",
  auth: ["none"],
  scope: "public",
  params: { tenant: tenantId, id: userId },
  query: { sig },
  limit: { kind: "login" },
  success: { body: userStatus },
  errors: { 403: "sig wrong", 404: "namespace or user unknown, or without an open invitation" },
});

export const acceptInvite = defineOperation({
  id: "acceptInvite",
  part: "Authentication and users",
  summary: "Accept an invitation, as the user whom it is for",
  method: "PATCH",
  path: "/api/namespaces/{tenant}/members/accept-invite",
  edition: "cloud",
  auth: ["jwt"],
  scope: "user",
  params: { tenant: tenantId },
  body: z.object({ sig }),
  errors: {
    400: "sig missing",
    403: "sig wrong or of another user's invitation, or called with an API key",
    404: "namespace or pending member unknown, or invite expired",
  },
});
