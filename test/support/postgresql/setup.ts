import { inject } from "vitest";

process.env.GATEHOUSE_TEST_POSTGRESQL = inject("postgresql");
