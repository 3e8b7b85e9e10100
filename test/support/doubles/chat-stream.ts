/** A chat completion of OpenAI without streaming. */
export const chatCompletion = (content: string | null, more: object = {}): string =>
  JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion',
    choices: [
      { index: 0, message: { role: 'assistant', content, ...more }, finish_reason: 'stop' },
    ],
    usage: { prompt_tokens: 31, completion_tokens: 7, total_tokens: 38 },
  })

/** A streamed chat completion, one event per piece; without `end` the final events are missing. */
export const chatCompletionEvents = (pieces: readonly string[], { end = true } = {}): string[] => [
  ...pieces.map(
    content =>
      `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta: { content } }] })}\n\n`,
  ),
  ...(end
    ? [
        `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}\n\n`,
        'data: [DONE]\n\n',
      ]
    : []),
]
