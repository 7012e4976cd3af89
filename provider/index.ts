export * from "./pulumi/generated/resources.ts";
