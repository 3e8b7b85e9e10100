import { currentCredential, onCredential } from '#api/console/app/credential.ts'

const answers = new Map<string, unknown>()
const answersMax = 30

// Nothing of a vault outlives the session of the tab.
onCredential(() => answers.clear())

/**
 * An answer that bills retrieval, read again only when something that bills nothing has changed: a page that
 * is opened again costs nothing.
 *
 * @param state what is shown of, and the free answer that changes with it, such as the stats of the vault
 */
export async function readOnce<Answer>(
  state: readonly unknown[],
  read: () => Promise<Answer>,
): Promise<Answer> {
  const name = JSON.stringify([currentCredential()?.key, ...state])
  if (answers.has(name)) return answers.get(name) as Answer
  const answer = await read()
  if (answers.size >= answersMax) answers.clear()
  answers.set(name, answer)
  return answer
}

/** To be called after an edit, which may leave the stats as they were. */
export const forgetAnswers = (): void => answers.clear()
