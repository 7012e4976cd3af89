import { z } from "zod";
import { defineOperation } from "./operation.ts";
import { TOTAL_COUNT, tag } from "./schemas.ts";

const part = "Devices and agents";
const BELOW_OPERATOR = "caller's role is below operator";

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
  summary: "The tags that devices, keys or rules of the namespace carry",
  method: "GET",
  path: "/api/tags",
  minRole: "observer",
  success: { headers: [TOTAL_COUNT], body: z.array(z.string()) },
  errors: { 404: "token without a namespace" },
});

export const renameTag = defineOperation({
  ...write,
  id: "renameTag",
  summary: "Rename a tag on everything that carries it, at once",
  method: "PUT",
  body: z.object({ tag }),
  errors: {
    400: "new tag invalid",
    403: BELOW_OPERATOR,
    404: "old tag not used in the namespace",
    409: "new tag already used in the namespace",
  },
});

export const deleteTag = defineOperation({
  ...write,
  id: "deleteTag",
  summary: "Remove a tag from everything that carries it; refused where it is a filter's last one",
  method: "DELETE",
  errors: {
    400: "the last one of the filter of a key or rule, which is named",
    403: BELOW_OPERATOR,
    404: "tag not used in the namespace",
  },
});
