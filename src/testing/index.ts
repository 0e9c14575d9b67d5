/**
 * `turnloop/testing`: a scripted model, an event recorder and a checker of event sequences, for the tests of a host; and
 * a conformance suite, for those of a StreamFn.
 * @module turnloop/testing
 */
export type { StreamFnScenario } from "./conformance/check-message.js";
export { type MakeStreamFn, type StreamFnTestOptions, testStreamFn } from "./conformance/test-stream-fn.js";
export { assertEventSequence } from "./event-sequence.js";
export { recordEvents } from "./recorder.js";
export {
  type Block,
  type DetailedAnswer,
  type Fault,
  type ScriptedAnswer,
  type ScriptedModel,
  type ScriptedModelOptions,
  scriptedModel,
} from "./scripted-model.js";
