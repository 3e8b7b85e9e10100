/** A chat answer as OpenAI sends it in one piece. */
export const chatCompletion = (content: string | null, more: object = {}): string =>
  JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion',
    choices: [
      { index: 0, message: { role: 'assistant', content, ...more }, finish_reason: 'stop' },
    ],
    usage: { prompt_tokens: 31, completion_tokens: 7, total_tokens: 38 },
  })

/** The same as a stream, a piece an event; without an end it only begins. */
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
