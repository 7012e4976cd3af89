import { Member } from "@gatehouse-access/provider";
import { staging } from "./namespace";

export const carla = new Member("carla", {
  tenant: staging.tenant,
  email: "carla@example.com",
  role: "operator",
});
