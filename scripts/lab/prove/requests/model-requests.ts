import {
  plain,
  ownQuestion,
  type RequestInput,
  type RequestPlan,
} from '#scripts/lab/prove/requests/request-plan.ts'

/** Memory around a call: the stand-in answers with all that it was sent. */
const modelCall = (body: (input: RequestInput) => object): RequestPlan => ({
  body,
  headers: ({ random }) => ({
    'x-provider-key': 'sk-of-the-proof',
    'x-memory-store': String(random() < 0.2),
    'x-memory-store-response': 'false',
  }),
})
const gemini = modelCall(input => ({
  contents: [{ role: 'user', parts: [{ text: ownQuestion(input) }] }],
}))
const passedOn = (body: object, type?: string): RequestPlan => ({
  ...modelCall(({ word }) => ({ ...body, input: word, prompt: word })),
  ...(type && { type }),
})
const form = (word: string): string =>
  [
    ['name="model"', 'openai/whisper-1'],
    ['name="file"; filename="a.wav"', word],
  ]
    .map(
      ([head, value]) => `--proof\r\ncontent-disposition: form-data; ${head}\r\n\r\n${value}\r\n`,
    )
    .join('') + '--proof--\r\n'

/** To model providers. */
export const modelRequests: Record<string, RequestPlan> = {
  models: plain,
  chat: modelCall(input => ({
    model: 'openai/gpt-5',
    messages: [{ role: 'user', content: ownQuestion(input) }],
  })),
  responses: modelCall(input => ({ model: 'openai/gpt-5', input: ownQuestion(input) })),
  anthropicMessages: modelCall(input => ({
    model: 'claude-sonnet-5',
    max_tokens: 100,
    messages: [{ role: 'user', content: ownQuestion(input) }],
  })),
  generateContent: gemini,
  streamGenerateContent: gemini,
  generateContentBeta: gemini,
  streamGenerateContentBeta: gemini,
  embed: passedOn({ model: 'openai/text-embedding-3-small' }),
  speak: passedOn({ model: 'openai/tts-1' }),
  drawImages: passedOn({ model: 'openai/gpt-image-1' }),
  transcribe: {
    ...passedOn({}, 'multipart/form-data; boundary=proof'),
    body: ({ word }) => form(word),
  },
}
