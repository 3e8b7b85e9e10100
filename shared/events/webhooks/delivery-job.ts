import { mintId } from '#shared/core/ids.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'

type Delivery = { id: string; webhook: string }

/** One `webhook` job per delivery; jobs of one webhook run a few at once. */
const jobOf = ({ id, webhook }: Delivery) => ({ data: { delivery: id }, key: id, group: webhook })

/** Sends the jobs of new deliveries, in the caller's transaction. */
export async function sendDeliveryJobs(
  tx: Transaction,
  queue: Pick<Queue, 'send'>,
  deliveries: readonly Delivery[],
): Promise<void> {
  if (deliveries.length === 0) return
  const jobs = deliveries.map(delivery => ({ ...jobOf(delivery), id: mintId(), priority: 0 }))
  await queue.send(tx, 'webhook', jobs)
}

/** Makes the job of a delivery due, or sends another one when it has ended. */
export const hastenDeliveryJob = (
  tx: Transaction,
  queue: Pick<Queue, 'sendOrHasten'>,
  delivery: Delivery,
): Promise<void> => queue.sendOrHasten(tx, 'webhook', jobOf(delivery))
