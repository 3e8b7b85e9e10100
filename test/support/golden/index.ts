import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Reply } from '#api/proxy/dialects/dialect.ts'
import type { ApiFormat } from '#shared/core/provider-registry.ts'

/** An answer as a provider sends it, byte for byte, and what is to be heard in it. */
export type GoldenAnswer = {
  name: string
  family: ApiFormat
  contentType: string
  bytes: Buffer
  reply: Reply
}

const whole = { truncated: false, complete: true, failed: false }
const half = { truncated: false, complete: false, failed: false }
const failed = { text: '', truncated: false, complete: false, failed: true }

const cat = 'Your cat Ada likes the café ☕ 猫 👩‍👩‍👧'
const replies: Record<string, Reply> = {
  'openai/text.sse': {
    ...whole,
    text: 'Your cat Ada likes the café ☕ and says 猫がいます 👩‍👩‍👧.\n\n"Quoted"\\ and \u2028 too.',
    inputTokens: 1204,
    outputTokens: 31,
  },
  'openai/tools.sse': { ...whole, text: 'Let me look.' },
  'openai/choices.sse': { ...whole, text: 'the first choice' },
  'openai/refusal.sse': { ...whole, text: 'I am sorry, I cannot help with that.' },
  'openai/reasoning.sse': { ...whole, text: 'Ada is three.', inputTokens: 7, outputTokens: 5 },
  'openai/parts.sse': { ...whole, text: 'Four cats.' },
  'openai/crlf.sse': { ...whole, text: 'Carriage returns over lines' },
  'openai/no-done.sse': { ...whole, text: 'All said' },
  'openai/error.sse': failed,
  'openai/error-choice.sse': failed,
  'openai/cut.sse': { ...half, text: 'This was cut ☕' },
  'openai/whole.json.txt': {
    ...whole,
    text: 'Ada, the "café" cat ☕\n🐱',
    inputTokens: 19,
    outputTokens: 10,
  },
  'openai/whole-tools.json.txt': { ...whole, text: '', inputTokens: 19, outputTokens: 10 },
  'openai/whole-audio.json.txt': {
    ...whole,
    text: 'Spoken words.',
    inputTokens: 19,
    outputTokens: 10,
  },
  'anthropic/text.sse': { ...whole, text: cat, inputTokens: 1025, outputTokens: 42 },
  'anthropic/tools.sse': { ...whole, text: 'Let me check.', inputTokens: 1025, outputTokens: 89 },
  'anthropic/thinking.sse': { ...whole, text: 'Three.', inputTokens: 1025, outputTokens: 42 },
  'anthropic/citations.sse': {
    ...whole,
    text: 'I will search.\nCats sleep sixteen hours a day.',
    inputTokens: 1025,
    outputTokens: 42,
  },
  'anthropic/error.sse': { ...failed, inputTokens: 1025, outputTokens: 1 },
  'anthropic/cut.sse': { ...half, text: 'This was cut ☕', inputTokens: 1025, outputTokens: 1 },
  'anthropic/no-stop.sse': { ...whole, text: 'All said', inputTokens: 1025, outputTokens: 42 },
  'anthropic/refusal.sse': { ...whole, text: 'I can not', inputTokens: 1025, outputTokens: 4 },
  'anthropic/whole.json.txt': {
    ...whole,
    text: 'Cats sleep a lot ☕.\nDone.',
    inputTokens: 115,
    outputTokens: 7,
  },
  'anthropic/whole-error.json.txt': failed,
  'google/text.sse': { ...whole, text: `${cat}.`, inputTokens: 8, outputTokens: 42 },
  'google/array.json.txt': { ...whole, text: `${cat}.`, inputTokens: 8, outputTokens: 42 },
  'google/thoughts.sse': { ...whole, text: 'Three.', inputTokens: 8, outputTokens: 3 },
  'google/tools.sse': { ...whole, text: 'Let me look.', inputTokens: 8, outputTokens: 3 },
  'google/candidates.sse': { ...whole, text: 'the first choice', inputTokens: 8, outputTokens: 3 },
  'google/code.json.txt': {
    ...whole,
    text: 'I will count.\nThree. Really.',
    inputTokens: 8,
    outputTokens: 3,
  },
  'google/image.json.txt': {
    ...whole,
    text: 'Here is your cat:\n[file]',
    inputTokens: 8,
    outputTokens: 3,
  },
  'google/blocked.json.txt': { ...whole, text: '', inputTokens: 4, outputTokens: 0 },
  'google/error.sse': { ...failed, inputTokens: 8, outputTokens: 3 },
  'google/error-array.json.txt': { ...failed, inputTokens: 8, outputTokens: 3 },
  'google/cut.sse': { ...half, text: 'Your cat', inputTokens: 8, outputTokens: 3 },
  'google/cut-array.json.txt': { ...half, text: 'Your cat', inputTokens: 8, outputTokens: 3 },
}

/** Every golden answer: streams of events, whole answers, and Gemini's stream without `alt=sse`. */
export const goldenAnswers: readonly GoldenAnswer[] = Object.entries(replies).map(
  ([name, reply]) => ({
    name,
    family: name.split('/')[0] as ApiFormat,
    contentType: name.endsWith('.sse') ? 'text/event-stream' : 'application/json; charset=UTF-8',
    bytes: readFileSync(join(import.meta.dirname, name)),
    reply,
  }),
)
