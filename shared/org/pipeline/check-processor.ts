import { refusal } from '#shared/core/refusal.ts'
import { openProcessor, type CompletionBackend } from '#shared/org/pipeline/cached-completion.ts'

/** Below the time that a request may take; a model answers the question in a few seconds. */
const deadlineMs = 20_000

/** As little as a question can be that has an answer in JSON. */
const question = {
  instructions: 'Answer true.',
  userPrompt: 'Is this a question?',
  schema: {
    type: 'object',
    properties: { answer: { type: 'boolean' } },
    required: ['answer'],
    additionalProperties: false,
  },
}

/**
 * Calls models as the pipeline of an organization does, all at once.
 *
 * @param apiKey undefined: the account's own
 * @throws Refusal `invalid` without a key, `upstream` for the first model that refuses or takes longer than 20 s.
 */
export async function checkProcessor(
  backend: CompletionBackend,
  access: { account: string; provider: string; apiKey: string | undefined },
  models: readonly string[],
): Promise<void> {
  const signal = AbortSignal.timeout(deadlineMs)
  const check = async (name: string): Promise<void> => {
    const { model, answeringModel } = await openProcessor(backend, access, name)
    await answeringModel.complete(question, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error
      throw refusal('upstream', 'processorLate', { model })
    })
  }
  await Promise.all([...new Set(models)].map(check))
}
