#!/usr/bin/env node
const { startProgram } = require("@gatehouse-access/sdk/startProgram.cjs");
const { engines } = require("../package.json");

startProgram("gatehouse-agent", engines.node, require.resolve("../dist/start.js"));
