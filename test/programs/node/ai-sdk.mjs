// Vercel AI SDK: a model with the middleware, with a tool loop, a stream that is stopped and a picture.
import { createOpenAI } from '@ai-sdk/openai'
import { generateText, stepCountIs, streamText, tool, wrapLanguageModel } from 'ai'
import { vaultMiddleware } from 'memory-vault-client/ai-sdk'
import { z } from 'zod'
import { answer, check, equal, main, pixel, remember, seen, texts, vaultOf } from './harness.mjs'

const openai = createOpenAI({
  baseURL: process.env.OPENAI_BASE_URL,
  apiKey: process.env.OPENAI_API_KEY,
})
const specificationVersion = { 5: 'v2', 6: 'v3', 7: 'v4' }[process.env.MAJOR]
const faults = []
const wrap = vault =>
  wrapLanguageModel({
    model: openai.chat('gpt-4o-mini'),
    middleware: vaultMiddleware(vault, {
      specificationVersion,
      onError: error => faults.push(error),
    }),
  })
const ada = vaultOf('ada')
const tools = {
  forecast: tool({
    description: 'The weather to come',
    inputSchema: z.object({ city: z.string(), days: z.number() }),
    execute: () => 'sunny',
  }),
}

async function first() {
  await remember(ada, 'My cat is called Tom.')
  const model = wrap(ada)
  await seen()
  const prompt = 'What is my cat called, and how will the weather be?'
  const { text } = await generateText({ model, prompt, tools, stopWhen: stepCountIs(3) })
  equal('the tool loop ends', text, 'The forecast says sun.')
  const bodies = await seen()
  equal(
    'each step has the block',
    bodies.map(body => /My cat is called Tom/.test(body)),
    [true, true],
  )
  equal('the turn is stored once', (await texts(ada)).filter(one => one === prompt).length, 1)
  const stop = new AbortController()
  const { textStream } = streamText({
    model,
    prompt: 'My kite is long.',
    abortSignal: stop.signal,
    onError: () => {},
  })
  try {
    for await (const part of textStream) if (part) stop.abort()
  } catch {}
  const image = `data:image/png;base64,${pixel}`
  const content = [
    { type: 'text', text: 'This is my tent.' },
    { type: 'image', image },
  ]
  await generateText({ model, messages: [{ role: 'user', content }] })
  const stored = await texts(ada)
  check('a stopped stream leaves the words', stored.includes('My kite is long.'), stored)
  check(
    'beside a picture the words',
    stored.includes('This is my tent.') && stored.includes(answer),
    stored,
  )
  const ben = wrap(vaultOf('ben'))
  await seen()
  await generateText({ model: ben, prompt: 'What is my cat called?' })
  check('another user is told nothing', !(await seen()).join('').includes('Tom'))
  equal('no fault of the memory', faults.map(String), [])
}

async function again() {
  await seen()
  await generateText({ model: wrap(ada), prompt: 'How long is my kite?' })
  check('after a restart the model is told', (await seen()).join('').includes('My kite is long.'))
}

await main({ first, again })
