import { call } from '#api/console/app/api-call.ts'
import { formatCost, formatCount, formatDateTime } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { dialogButton, dialogForm } from '#api/console/app/parts/dialogs.ts'
import { textField, useFields } from '#api/console/app/parts/fields.ts'
import type { Budget } from '#api/contract/generated/types.ts'

const whole = {
  type: 'number',
  min: 1,
  max: 2_000_000_000,
  step: 1,
  placeholder: 'No limit',
} as const

/** The number in a field; empty is no limit. */
export const limitOf = (typed: string): number | null =>
  typed.trim() === '' ? null : Number(typed)

export const limitText = (limit: number | null): string => String(limit ?? '')

type LimitBinding = { value: string; onValue: (value: string) => void }

/** Fields of a budget, by whom it is for. */
export const limitFields = (
  whose: string,
  limits: Record<'requests' | 'tokens' | 'dollars', LimitBinding>,
): View[] => [
  textField({
    label: `Dollars of ${whose} in 30 days`,
    ...whole,
    min: 0.01,
    max: 1_000_000,
    step: 0.01,
    ...limits.dollars,
    hint: 'For model calls, by list prices. Empty: no limit.',
  }),
  textField({ label: `Requests of ${whose} in 24 hours`, ...whole, ...limits.requests }),
  textField({
    label: `Tokens of ${whose} in 24 hours`,
    ...whole,
    ...limits.tokens,
    hint: 'Input and output of model calls. Empty: no limit.',
  }),
]

/** How much of a budget is used: `3 of 50 requests`. */
export const usedOf = ({
  requests,
  tokens,
  used_requests,
  used_tokens,
  dollars = null,
  used_dollars = 0,
}: Budget): string =>
  [
    dollars !== null && `${formatCost(used_dollars)} of ${formatCost(dollars)}`,
    requests !== null && `${formatCount(used_requests)} of ${formatCount(requests)} requests`,
    tokens !== null && `${formatCount(used_tokens)} of ${formatCount(tokens)} tokens`,
  ]
    .filter(Boolean)
    .join(', ')

/** How much of a budget is used, from 0 to 1 and beyond. */
export const fullness = ({
  requests,
  tokens,
  used_requests,
  used_tokens,
  dollars = null,
  used_dollars = 0,
}: Budget): number =>
  Math.max(
    dollars === null ? 0 : used_dollars / dollars,
    requests === null ? 0 : used_requests / requests,
    tokens === null ? 0 : used_tokens / tokens,
  )

/** A budget as a bar, with what is used of it in words. */
export const budgetBar = (budget: Budget): View =>
  html`<span class="share"
    ><meter
      max="1"
      low="0.8"
      high="1"
      optimum="0"
      value=${fullness(budget)}
      aria-hidden="true"
    ></meter>
    ${usedOf(budget)}</span
  >`

/** What is used of a budget; nothing without one. */
export function budgetView(budget: Budget | null): View | null {
  if (!budget) return null
  const { resets_at } = budget
  const until = resets_at === null ? 'in 24 hours' : `until ${formatDateTime(resets_at)}`
  return html`<span title=${until}>${`Used: ${usedOf(budget)}`}</span>`
}

type BudgetProps = { id: string; about: string; budget: Budget | null; onChanged: () => void }

/** Sets the budget of a key. */
export const budgetButton = (props: BudgetProps): View =>
  dialogButton('Budget', onClose => renderComponent(BudgetDialog, { ...props, onClose }), {
    about: props.about,
  })

function BudgetDialog(props: BudgetProps & { onClose: () => void }): View {
  const { id, about, budget, onChanged, onClose } = props
  const { fields, of } = useFields({
    requests: limitText(budget?.requests ?? null),
    tokens: limitText(budget?.tokens ?? null),
    dollars: limitText(budget?.dollars ?? null),
  })
  return dialogForm({
    title: `Budget of ${about}`,
    verb: 'Save',
    fields: limitFields('this key', {
      requests: of('requests'),
      tokens: of('tokens'),
      dollars: of('dollars'),
    }),
    act: () =>
      call('PATCH /v1/keys/:memoryKeyId', {
        params: { memoryKeyId: id },
        body: {
          daily_requests: limitOf(fields.requests),
          daily_tokens: limitOf(fields.tokens),
          monthly_dollars: limitOf(fields.dollars),
        },
      }),
    done: 'The budget is saved.',
    onDone: onChanged,
    onClose,
  })
}
