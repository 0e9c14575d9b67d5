/**
 * `turnloop/testing`: a scripted model, an event recorder and a checker of event sequences, for the tests of a host.
 * @module
 */
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
