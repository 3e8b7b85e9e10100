import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Reply } from '#api/proxy/dialects/dialect.ts'
import type { ApiFormat } from '#shared/core/provider-registry.ts'

/** The exact bytes of a provider's answer, and what is parsed from it. */
export type GoldenAnswer = {
  name: string
  family: ApiFormat
  contentType: string
  bytes: Buffer
  reply: Reply
}

const complete = { truncated: false, complete: true, failed: false }
const step = { ...complete, isStep: true }
const half = { truncated: false, complete: false, failed: false }
const failed = { text: '', truncated: false, complete: false, failed: true }

const responsesUsage = { inputTokens: 1204, cachedTokens: 1024, outputTokens: 31 }
const cat = 'Your cat Ada likes the café ☕ 猫 👩‍👩‍👧'
const replies: Record<string, Reply> = {
  'openai/text.sse': {
    ...complete,
    text: 'Your cat Ada likes the café ☕ and says 猫がいます 👩‍👩‍👧.\n\n"Quoted"\\ and \u2028 too.',
    inputTokens: 1204,
    cachedTokens: 1024,
    outputTokens: 31,
  },
  'openai/tools.sse': { ...step, text: 'Let me look.' },
  'openai/choices.sse': { ...complete, text: 'the first choice' },
  'openai/refusal.sse': { ...complete, text: 'I am sorry, I cannot help with that.' },
  'openai/reasoning.sse': { ...complete, text: 'Ada is three.', inputTokens: 7, outputTokens: 5 },
  'openai/parts.sse': { ...complete, text: 'Four cats.' },
  'openai/crlf.sse': { ...complete, text: 'Carriage returns over lines' },
  'openai/no-done.sse': { ...complete, text: 'All said' },
  'openai/error.sse': failed,
  'openai/error-choice.sse': failed,
  'openai/cut.sse': { ...half, text: 'This was cut ☕' },
  'openai/whole.json.txt': {
    ...complete,
    text: 'Ada, the "café" cat ☕\n🐱',
    inputTokens: 19,
    outputTokens: 10,
  },
  'openai/whole-tools.json.txt': { ...step, text: '', inputTokens: 19, outputTokens: 10 },
  'openai/whole-audio.json.txt': {
    ...complete,
    text: 'Spoken words.',
    inputTokens: 19,
    outputTokens: 10,
  },
  'anthropic/text.sse': {
    ...complete,
    text: cat,
    inputTokens: 1025,
    cachedTokens: 1000,
    outputTokens: 42,
  },
  'anthropic/tools.sse': {
    ...step,
    text: 'Let me check.',
    inputTokens: 1025,
    cachedTokens: 1000,
    outputTokens: 89,
  },
  'anthropic/thinking.sse': {
    ...complete,
    text: 'Three.',
    inputTokens: 1025,
    cachedTokens: 1000,
    outputTokens: 42,
  },
  'anthropic/citations.sse': {
    ...complete,
    text: 'I will search.\nCats sleep sixteen hours a day.',
    inputTokens: 1025,
    cachedTokens: 1000,
    outputTokens: 42,
  },
  'anthropic/error.sse': { ...failed, inputTokens: 1025, cachedTokens: 1000, outputTokens: 1 },
  'anthropic/cut.sse': {
    ...half,
    text: 'This was cut ☕',
    inputTokens: 1025,
    cachedTokens: 1000,
    outputTokens: 1,
  },
  'anthropic/no-stop.sse': {
    ...complete,
    text: 'All said',
    inputTokens: 1025,
    cachedTokens: 1000,
    outputTokens: 42,
  },
  'anthropic/refusal.sse': {
    ...complete,
    text: 'I can not',
    inputTokens: 1025,
    cachedTokens: 1000,
    outputTokens: 4,
  },
  'anthropic/whole.json.txt': {
    ...step,
    text: 'Cats sleep a lot ☕.\nDone.',
    inputTokens: 115,
    cachedTokens: 100,
    outputTokens: 7,
  },
  'anthropic/whole-error.json.txt': failed,
  'responses/text.sse': {
    ...complete,
    text: 'Your cat Ada likes the café ☕ and says 猫がいます 👩‍👩‍👧.\n\n"Quoted"\\ and \u2028 too.',
    ...responsesUsage,
  },
  'responses/tools.sse': { ...step, text: 'Let me look.', ...responsesUsage },
  'responses/search.sse': {
    ...complete,
    text: 'I will search.\nCats sleep a lot.',
    ...responsesUsage,
  },
  'responses/refusal.sse': {
    ...complete,
    text: 'I am sorry, I cannot help with that.',
    ...responsesUsage,
  },
  'responses/completed-only.sse': {
    ...complete,
    text: 'All at once ☕. Really.',
    ...responsesUsage,
  },
  'responses/done.sse': { ...complete, text: 'By way of others.', ...responsesUsage },
  'responses/incomplete.sse': { ...complete, text: 'This was as long as', ...responsesUsage },
  'responses/failed.sse': failed,
  'responses/error.sse': failed,
  'responses/cut.sse': { ...half, text: 'This was cut ☕' },
  'responses/whole.json.txt': {
    ...complete,
    text: 'Ada, the "café" cat ☕\n🐱',
    inputTokens: 19,
    outputTokens: 10,
  },
  'responses/whole-tools.json.txt': { ...step, text: '', inputTokens: 19, outputTokens: 10 },
  'responses/whole-image.json.txt': {
    ...complete,
    text: '[image]\nHere is your cat.',
    inputTokens: 19,
    outputTokens: 10,
  },
  'responses/background.json.txt': { ...complete, text: '' },
  'responses/whole-failed.json.txt': failed,
  'google/text.sse': { ...complete, text: `${cat}.`, inputTokens: 8, outputTokens: 42 },
  'google/array.json.txt': { ...complete, text: `${cat}.`, inputTokens: 8, outputTokens: 42 },
  'google/thoughts.sse': { ...complete, text: 'Three.', inputTokens: 8, outputTokens: 3 },
  'google/tools.sse': { ...step, text: 'Let me look.', inputTokens: 8, outputTokens: 3 },
  'google/candidates.sse': {
    ...complete,
    text: 'the first choice',
    inputTokens: 8,
    outputTokens: 3,
  },
  'google/code.json.txt': {
    ...complete,
    text: 'I will count.\nThree. Really.',
    inputTokens: 8,
    outputTokens: 3,
  },
  'google/image.json.txt': {
    ...complete,
    text: 'Here is your cat:\n[file]',
    inputTokens: 8,
    outputTokens: 3,
  },
  'google/blocked.json.txt': { ...complete, text: '', inputTokens: 4, outputTokens: 0 },
  'google/error.sse': { ...failed, inputTokens: 8, outputTokens: 3 },
  'google/error-array.json.txt': { ...failed, inputTokens: 8, outputTokens: 3 },
  'google/cut.sse': { ...half, text: 'Your cat', inputTokens: 8, outputTokens: 3 },
  'google/cut-array.json.txt': { ...half, text: 'Your cat', inputTokens: 8, outputTokens: 3 },
}

/** All golden answers: event streams, JSON answers, and Gemini's stream without `alt=sse`. */
export const goldenAnswers: readonly GoldenAnswer[] = Object.entries(replies).map(
  ([name, reply]) => ({
    name,
    family: name.split('/')[0] as ApiFormat,
    contentType: name.endsWith('.sse') ? 'text/event-stream' : 'application/json; charset=UTF-8',
    bytes: readFileSync(join(import.meta.dirname, name)),
    reply,
  }),
)
