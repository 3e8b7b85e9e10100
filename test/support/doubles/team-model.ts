import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { listen } from '#test/support/start/listen.ts'

/** The pass of a model call; `chat` is a call of a member through the proxy. */
type TeamPass = 'extract' | 'tag' | 'reconcile' | 'chat'

type ModelCall = {
  pass: TeamPass
  dialect: 'openai' | 'anthropic' | 'google'
  path: string
  key: string
  model: string
  instructions: string
  // oxlint-disable-next-line typescript/no-explicit-any -- what a test reads is what it asserts
  userPrompt: any
  // oxlint-disable-next-line typescript/no-explicit-any -- the provider's own format
  body: any
}

/**
 * The text of an answer, complete or with `cut` as one that reached the token limit; an object with a
 * status is an error.
 */
type ScriptedAnswer = string | { text: string; cut: true } | { status: number; message?: string }

export type TeamModel = {
  origin: string
  /** Environment variables that point the three supported providers to this server. */
  env: Record<string, string>
  readonly calls: ModelCall[]
  count(pass: TeamPass): number
  /** Sets the answers of the next calls of a pass; null is the answer by the rules. */
  scriptAnswers(
    pass: TeamPass,
    ...answers: (
      | ScriptedAnswer
      | null
      | ((call: ModelCall) => ScriptedAnswer | null | Promise<ScriptedAnswer | null>)
    )[]
  ): void
  /** Forgets calls and the answers that were set; for `t.beforeEach`. */
  reset(): void
  /** Fails every call with this status; null ends that. */
  failAll(status: number | null): void
  /** How long every answer takes. */
  delayAll(ms: number): void
}

/**
 * A model that answers by simple rules, in the dialects of three providers:
 * - a line `Fact: …` of a member is a fact; `Note: …` is a fact marked as a note;
 * - a tag applies to a fact that has its label as a `#word`, and may apply to one with `?word`;
 * - two statements `name: value` of the same name are about the same thing.
 */
export async function startTeamModel(t: Test): Promise<TeamModel> {
  const calls: ModelCall[] = []
  const scripts = new Map<TeamPass, ReturnType<typeof Array.of>>()
  let failing: number | null = null
  let delayMs = 0

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const call = callOf(request, JSON.parse(Buffer.concat(chunks).toString()))
    calls.push(call)
    if (delayMs > 0) await delay(delayMs)
    const script = scripts.get(call.pass)?.shift() as
      | ScriptedAnswer
      | null
      | ((call: ModelCall) => ScriptedAnswer | null | Promise<ScriptedAnswer | null>)
      | undefined
    const scripted = typeof script === 'function' ? await script(call) : script
    const reply: ScriptedAnswer =
      failing === null ? (scripted ?? answerByRules(call)) : { status: failing }
    response.setHeader('content-type', 'application/json')
    if (typeof reply === 'object' && 'status' in reply) {
      response.writeHead(reply.status)
      return void response.end(JSON.stringify({ error: { message: reply.message ?? 'no' } }))
    }
    const isCut = typeof reply === 'object'
    response.end(JSON.stringify(wrapped(call, isCut ? reply.text : reply, isCut)))
  }
  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy())
  })
  const origin = await listen(t, server)
  return {
    origin,
    env: {
      OPENAI_BASE_URL: `${origin}/v1`,
      ANTHROPIC_BASE_URL: origin,
      GOOGLE_BASE_URL: origin,
    },
    calls,
    count: pass => calls.filter(call => call.pass === pass).length,
    scriptAnswers: (pass, ...answers) => void scripts.set(pass, answers),
    reset: () => {
      calls.length = 0
      scripts.clear()
      failing = null
    },
    failAll: status => void (failing = status),
    delayAll: ms => void (delayMs = ms),
  }
}

function answerByRules({ pass, userPrompt }: ModelCall): string {
  const opinion = ruleBasedAnswers[pass](userPrompt)
  return typeof opinion === 'string' ? opinion : JSON.stringify(opinion)
}

// oxlint-disable-next-line typescript/no-explicit-any -- three formats
function callOf(request: IncomingMessage, body: any): ModelCall {
  const path = request.url ?? ''
  const { authorization = '', 'x-goog-api-key': google, 'x-api-key': anthropic } = request.headers
  const key = String(google ?? anthropic ?? authorization.replace('Bearer ', ''))
  const common = { path, key, body }
  if (path.endsWith('/chat/completions')) {
    const [system] = body.messages
    return buildModelCall(
      common,
      'openai',
      body.model,
      system.content,
      body.messages.at(-1).content,
    )
  }
  if (path.startsWith('/v1/messages')) {
    return buildModelCall(
      common,
      'anthropic',
      body.model,
      textOf(body.system),
      textOf(body.messages[0].content),
    )
  }
  const model = /models\/([^:]+):/.exec(path)?.[1] ?? ''
  const { systemInstruction, contents } = body
  return buildModelCall(
    common,
    'google',
    model,
    systemInstruction.parts[0].text,
    contents[0].parts[0].text,
  )
}

const textOf = (content: string | { text: string }[]): string =>
  typeof content === 'string' ? content : content.map(({ text }) => text).join('')

function buildModelCall(
  common: Pick<ModelCall, 'path' | 'key' | 'body'>,
  dialect: ModelCall['dialect'],
  model: string,
  instructions: string,
  text: string,
): ModelCall {
  const material = materialIn(text)
  const pass = passes.find(([name]) => name in material)?.[1] ?? 'chat'
  return { ...common, dialect, model, instructions, userPrompt: material, pass }
}

const passes: [string, TeamPass][] = [
  ['turns', 'extract'],
  ['questions', 'tag'],
  ['memories', 'reconcile'],
]

function materialIn(text: string): object {
  try {
    return JSON.parse(text) as object
  } catch {
    return {}
  }
}

function wrapped({ dialect, model }: ModelCall, text: string, isCut: boolean): object {
  if (dialect === 'google') {
    return {
      candidates: [
        {
          content: { role: 'model', parts: [{ text }] },
          finishReason: isCut ? 'MAX_TOKENS' : 'STOP',
        },
      ],
      usageMetadata: {
        promptTokenCount: 100,
        cachedContentTokenCount: 40,
        candidatesTokenCount: 20,
        totalTokenCount: 120,
      },
    }
  }
  if (dialect === 'anthropic') {
    const common = { id: 'msg_1', type: 'message', role: 'assistant', model }
    const usage = { input_tokens: 60, cache_read_input_tokens: 40, output_tokens: 20 }
    const stop_reason = isCut ? 'max_tokens' : 'tool_use'
    return { ...common, content: [blockOf(text)], stop_reason, usage }
  }
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1_772_000_000,
    model,
    choices: [
      {
        index: 0,
        finish_reason: isCut ? 'length' : 'stop',
        message: { role: 'assistant', content: text },
      },
    ],
    usage: {
      prompt_tokens: 100,
      prompt_tokens_details: { cached_tokens: 40 },
      completion_tokens: 20,
      total_tokens: 120,
    },
  }
}

function blockOf(text: string): object {
  try {
    return { type: 'tool_use', id: 'toolu_1', name: 'answer', input: JSON.parse(text) as object }
  } catch {
    return { type: 'text', text }
  }
}

// oxlint-disable-next-line typescript/no-explicit-any -- what the service sends is what is asserted
const ruleBasedAnswers: Record<TeamPass, (material: any) => unknown> = {
  chat: () => 'I see.',

  extract: ({ turns }) => ({
    facts: turns.flatMap((turn: { turn: number; messages: { from: string; text: string }[] }) =>
      turn.messages
        .filter(({ from }) => from !== 'model')
        .flatMap(({ text }) => [...text.matchAll(/^(Fact|Note): (.+)$/gm)])
        .map(([, kind, text]) => ({
          turn: turn.turn,
          text,
          note: kind === 'Note',
          confidence: 0.9,
        })),
    ),
  }),

  tag: ({ facts, questions }) => ({
    facts: facts.map(({ fact, text }: { fact: number; text: string }) => ({
      fact,
      answers: Object.fromEntries(
        questions.map(({ id, tag }: { id: string; tag: string }) => [
          id,
          text.includes(`#${tag}`) ? 0.95 : text.includes(`?${tag}`) ? 0.5 : 0.03,
        ]),
      ),
    })),
  }),

  reconcile: ({ facts, memories }) => ({
    decisions: facts.map(({ fact, text, near }: { fact: number; text: string; near: string[] }) => {
      const about = (words: string): string => words.split(':')[0]!
      const same = memories.find(
        (memory: { memory: string; text: string }) =>
          near.includes(memory.memory) && about(memory.text) === about(text),
      )
      if (!same) return { fact, action: 'ADD', memory: '', text: '' }
      if (same.text === text) return { fact, action: 'NONE', memory: same.memory, text: '' }
      return { fact, action: 'UPDATE', memory: same.memory, text }
    }),
  }),
}
