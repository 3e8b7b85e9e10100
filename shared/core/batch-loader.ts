/**
 * One read for all that ask at once. A question that comes while a read is under way waits for the
 * next one, which then answers everybody who came meanwhile: no answer is older than its question.
 * A lone question is read at once.
 *
 * @param read answers to the questions, in their order
 * @param lanes how many reads may be under way at once
 */
export function batchLoader<Question, Answer>(
  read: (questions: Question[]) => Promise<Answer[]>,
  { lanes: concurrency, questionsMax: maxBatchSize }: { lanes: number; questionsMax: number },
): (question: Question) => Promise<Answer> {
  type Asker = {
    question: Question
    resolve: (answer: Answer) => void
    reject: (error: unknown) => void
  }
  const waiting: Asker[] = []
  let reading = 0

  const readWaiting = async (): Promise<void> => {
    if (reading >= concurrency) return
    reading++
    while (waiting.length > 0) {
      const batch = waiting.splice(0, maxBatchSize)
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
