import { useEffect, useRef, useState } from 'preact/hooks'
import { html, type View } from '#api/console/app/html.ts'
import { onSubmit, textField } from '#api/console/app/parts/fields.ts'
import { faultNote } from '#api/console/app/parts/query-view.ts'
import { useAction } from '#api/console/app/use-query.ts'
import type { Proposal } from '#api/console/app/vault/consolidate/held-batch.ts'
import { proposeReflections } from '#api/console/app/vault/consolidate/propose.ts'
import type { CheckedOutBatch } from '#api/contract/generated/types.ts'

type Props = { batch: CheckedOutBatch; onProposed: (proposals: Proposal[]) => void }

/** Runs a model of the person's choice on a batch. The key for its provider is state of this form alone. */
export function ModelForm({ batch, onProposed }: Props): View {
  const [model, setModel] = useState('')
  const [providerKey, setProviderKey] = useState('')
  const running = useRef<AbortController>(undefined)
  const actionState = useAction()
  useEffect(() => () => running.current?.abort(), [])
  const run = async (): Promise<void> => {
    const controller = (running.current = new AbortController())
    try {
      const chosen = { model: model.trim(), providerKey: providerKey.trim() }
      onProposed(await proposeReflections(batch, chosen, controller.signal))
    } catch (error) {
      if (!controller.signal.aborted) throw error
    }
  }
  return html`<form class="panel stack" onSubmit=${onSubmit(() => actionState.run(run))}>
    <div class="filters">
      ${textField({
        label: 'Model',
        value: model,
        onValue: setModel,
        required: true,
        maxlength: 256,
        placeholder: 'openai/gpt-5',
      })}
      ${textField({
        label: 'Key for its provider',
        type: 'password',
        value: providerKey,
        onValue: setProviderKey,
        maxlength: 4_096,
        autocomplete: 'off',
        hint: 'Sent with the call, and stored nowhere. Empty: the key that the account has.',
      })}
    </div>
    <p class="quiet">
      The batch goes to this model through the service, without memory: nothing of the call is
      remembered. Your provider bills it.
    </p>
    ${faultNote(actionState.fault)}
    <div class="actions">
      <button class="button button-main" disabled=${actionState.isRunning}>
        ${actionState.isRunning ? 'The model is writing …' : 'Run the model'}
      </button>
      ${
        actionState.isRunning &&
        html`<button type="button" class="button" onClick=${() => running.current?.abort()}>
          Stop
        </button>`
      }
    </div>
  </form>`
}
