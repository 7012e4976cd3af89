import { z } from "zod";
import { defineOperation } from "./operation.ts";
import { TOTAL_COUNT, tag } from "./schemas.ts";

const part = "Devices and agents";
const BELOW_OPERATOR = "caller's role is below `operator`";

const common = { part, auth: ["jwt", "apikey"], scope: "namespace" } as const;
const write = {
  ...common,
  path: "/api/tags/{tag}",
  object: "tag",
  minRole: "operator",
  params: { tag },
} as const;

export const getTags = defineOperation({
  ...common,
  id: "getTags",
  summary: "List the tags of the namespace's devices, keys and rules",
  method: "GET",
  path: "/api/tags",
  minRole: "observer",
  success: { headers: [TOTAL_COUNT], body: z.array(z.string()) },
  errors: { 404: "the token is not for a namespace" },
});

export const renameTag = defineOperation({
  ...write,
  id: "renameTag",
  summary: "Rename a tag on all devices, keys and rules",
  method: "PUT",
  body: z.object({ tag }),
  errors: {
    400: "new tag invalid",
    403: BELOW_OPERATOR,
    404: "old tag not in use in the namespace",
    409: "new tag already in use in the namespace",
  },
});

export const deleteTag = defineOperation({
  ...write,
  id: "deleteTag",
  summary:
    "Remove a tag from all devices, keys and rules. The service refuses to remove the last tag of a filter",
  method: "DELETE",
  errors: {
    400: "the tag is the last tag in the filter of a key or rule; the message contains the key or rule",
    403: BELOW_OPERATOR,
    404: "tag not in use in the namespace",
  },
});
