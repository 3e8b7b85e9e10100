/**
 * Reads for many callers at once. A question that arrives during a read waits for the next one, so that no answer is
 * older than its question.
 *
 * @param read returns the answers in the order of the questions
 * @param concurrency reads that may run at once
 * @param gather is awaited before an idle loader reads, so that questions of that time are read together
 */
export function batchLoader<Question, Answer>(
  read: (questions: Question[]) => Promise<Answer[]>,
  {
    concurrency,
    batchMax,
    gather,
  }: { concurrency: number; batchMax: number; gather?: () => Promise<unknown> },
): (question: Question) => Promise<Answer> {
  const waiting: {
    question: Question
    resolve: (answer: Answer) => void
    reject: (error: unknown) => void
  }[] = []
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
