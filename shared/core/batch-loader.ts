/**
 * Reads for many callers at once. A question that arrives while a read is running waits for the
 * next read, so no answer is older than its question. A question that arrives alone is read at
 * once.
 *
 * @param read returns the answers in the order of the questions
 * @param concurrency how many reads may run at once
 * @param gather is awaited before the first read of an idle loader, so that what is asked meanwhile is read with it
 */
export function batchLoader<Question, Answer>(
  read: (questions: Question[]) => Promise<Answer[]>,
  {
    concurrency,
    batchMax,
    gather,
  }: { concurrency: number; batchMax: number; gather?: () => Promise<unknown> },
): (question: Question) => Promise<Answer> {
  type PendingQuestion = {
    question: Question
    resolve: (answer: Answer) => void
    reject: (error: unknown) => void
  }
  const waiting: PendingQuestion[] = []
  let reading = 0

  const readWaiting = async (): Promise<void> => {
    if (reading >= concurrency) return
    reading++
    if (gather) await gather()
    while (waiting.length > 0) {
      const batch = waiting.splice(0, batchMax)
      try {
        const answers = await read(batch.map(({ question }) => question))
        batch.forEach(({ resolve }, index) => resolve(answers[index]!))
      } catch (error) {
        for (const { reject } of batch) reject(error)
      }
    }
    reading--
  }

  return question =>
    new Promise<Answer>((resolve, reject) => {
      waiting.push({ question, resolve, reject })
      void readWaiting()
    })
}
