import t from 'tap'
import { askedLabels, hasLabel } from '#shared/search/query/attributes/attributes.ts'

const answers: [question: string, label: string][] = [
  ['What is my name?', 'name'],
  ['Can you remind me what my name is?', 'name'],
  ['my name', 'name'],
  ['Who am I?', 'name'],
  ['Where is my home?', 'home'],
  ['Wo ist mein Zuhause?', 'zuhause'],
  ['¿Quién soy?', 'nombre'],
  ['Where do I live now?', 'location'],
  ['Where do I live now?', 'wohnort'],
  ['What do I do for a living?', 'job'],
  ['What is my current job?', 'occupation'],
  ['Which company do I work for?', 'employer'],
  ['Am I vegan?', 'diet'],
  ['How old am I?', 'date of birth'],
  ['How old am I?', 'age'],
  ['Do I have any pets?', 'dog'],
  ['What is my dog’s name?', 'dog'],
  ['How many children do I have?', 'sons'],
  ['Who am I married to?', 'husband'],
  ['Wie heiße ich?', 'name'],
  ['Wo wohne ich eigentlich?', 'wohnort'],
  ['Wie viele Kinder habe ich?', 'kinder'],
  ['¿Cómo me llamo?', 'nombre'],
  ['¿A qué me dedico?', 'profesion'],
  ['Où est-ce que j’habite ?', 'ville'],
  ['Quel est mon métier ?', 'metier'],
  ['C’est quoi mon prénom ?', 'prenom'],
  ['Où est ma maison ?', 'maison'],
  ['¿Quién soy yo?', 'nombre'],
  ['¿Dónde está mi casa?', 'casa'],
  ['Weißt du noch, wer ich bin?', 'name'],
  ['Come mi chiamo?', 'nome'],
  ['Qual è il mio indirizzo?', 'indirizzo'],
  ['Dov’è casa mia?', 'casa'],
  ['Quem sou eu?', 'nome'],
  ['Onde é a minha casa?', 'casa'],
  ['Hoe heet ik?', 'naam'],
  ['Waar is mijn huis?', 'huis'],
  ['Как меня зовут?', 'имя'],
  ['Какой у меня адрес?', 'адрес'],
  ['Где мой дом?', 'дом'],
]

const others: [question: string, label: string][] = [
  ['What is my wife’s name?', 'name'],
  ['What is the name of the café?', 'name'],
  ['Where does Anna live?', 'location'],
  ['Who am I talking to?', 'name'],
  ['What is my dog’s food?', 'dog'],
  ['What is my dog’s name?', 'cat'],
  ['Who is my husband?', 'wife'],
  ['When is my birthday party?', 'birthday'],
  ['My name is Ada.', 'name'],
  ['I live in Berlin.', 'location'],
  ['Wie heißt die Hauptstadt?', 'name'],
  ['¿Cómo se llama mi hermana?', 'nombre'],
  ['Who are you?', 'name'],
  ['Who am I speaking to?', 'name'],
  ['Mit wem spreche ich?', 'name'],
  ['¿Quién eres?', 'nombre'],
  ['I Rossi, chi sono?', 'nome'],
  ['Come si chiama mia sorella?', 'nome'],
  ['Waar woont mijn zus?', 'huis'],
  ['Как зовут моего брата?', 'имя'],
  ['Как тебя зовут?', 'имя'],
  ['Где живёт моя сестра?', 'дом'],
]

t.test('askedLabels has the labels under which the answer is noted', async t => {
  for (const [question, label] of answers)
    t.ok(askedLabels(question)?.has(label), `${question} | ${label}`)
  for (const [question, label] of others)
    t.notOk(askedLabels(question)?.has(label), `${question} | ${label}`)
})

t.test('hasLabel finds a label at the beginning of a line, with a value behind it', async t => {
  const labels = new Set(['name', 'user name', 'job', 'e-mail', 'имя', 'nome'])
  for (const text of [
    'Name: Ada',
    'name = Ada',
    'My name: Ada',
    'User name: Ada',
    "The user's job: nurse",
    '- Job: nurse',
    'Моё имя: Ада',
    'Il mio nome: Ada',
    'Notes\n* Name : Ada\n',
    'E-Mail：ada@example.org',
  ])
    t.ok(hasLabel(text, labels), text)
  for (const text of ['Name', 'Name:', 'The name: Ada', 'Names: Ada', 'I said name: Ada', ''])
    t.notOk(hasLabel(text, labels), text)
})
