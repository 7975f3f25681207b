// A client over @grpc/grpc-js, which reads our proto files itself; what it asks is in ../checks.md.
'use strict';

const path = require('path');

// The packages lie in the build tree: NODE_PATH says where.
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const ROOT = path.resolve(__dirname, '../../..');
const LOADED = { keepCase: true, longs: String, enums: String, defaults: true, oneofs: true, includeDirs: [ROOT] };

function load(file) {
  return grpc.loadPackageDefinition(loader.loadSync(path.join(ROOT, 'proto', file), LOADED));
}

const address = process.argv[2];
const limit = { 'grpc.max_receive_message_length': -1, 'grpc.max_send_message_length': -1 };
const open = (Service) => new Service(address, grpc.credentials.createInsecure(), limit);
const server = open(load('grpc_service.proto').inference.GRPCInferenceService);
const health = open(load('health.proto').grpc.health.v1.Health);

function check(name, ok, found) {
  if (!ok) throw new Error(`${name}: found ${JSON.stringify(found)}`);
}

function call(client, method, request, options = {}) {
  return new Promise((resolve, reject) => {
    client[method](request, new grpc.Metadata(), options, (error, answer) => (error ? reject(error) : resolve(answer)));
  });
}

async function failure(request) {
  try {
    return await call(server, 'ModelInfer', request);
  } catch (error) {
    return error;
  }
}

function raw(values) {
  const out = Buffer.alloc(4 * values.length);
  values.forEach((value, i) => out.writeFloatLE(value, 4 * i));
  return out;
}

const count = (n) => Array.from({ length: n }, (_, i) => i);

function input(name, ...shape) {
  return { name, datatype: 'FP32', shape };
}

function rawRequest(id, values) {
  return {
    model_name: 'id_fp32', id, inputs: [input('INPUT0', values.length)], raw_input_contents: [raw(values)],
  };
}

async function about() {
  check('live', (await call(server, 'ServerLive', {})).live);
  console.log('ok live');
  check('ready', (await call(server, 'ServerReady', {})).ready);
  check('ready', (await call(server, 'ModelReady', { name: 'id_fp32' })).ready);
  console.log('ok ready');
  const state = await call(health, 'Check', {});
  check('health', state.status === 'SERVING', state);
  console.log('ok health');
  const metadata = await call(server, 'ServerMetadata', {});
  check('server', metadata.name && metadata.version && metadata.extensions.includes('binary_tensor_data'), metadata);
  console.log('ok server');
  const model = await call(server, 'ModelMetadata', { name: 'id_fp32' });
  const [tensor] = model.inputs;
  check('model', model.name === 'id_fp32' && tensor.name === 'INPUT0' && tensor.datatype === 'FP32', model);
  check('model', tensor.shape.length === 1 && tensor.shape[0] === '-1', model);
  console.log('ok model');
}

async function same(name, request, ...expected) {
  const answer = await call(server, 'ModelInfer', request);
  check(name, answer.id === (request.id || ''), answer.id);
  check(name, answer.raw_output_contents.length === expected.length, answer.raw_output_contents.length);
  expected.forEach((bytes, i) => check(name, bytes.equals(answer.raw_output_contents[i]), i));
  console.log('ok', name);
}

async function infer() {
  const values = [1.5, -2, 1e30];
  await same('infer-raw', rawRequest('raw', values), raw(values));
  const typed = { ...rawRequest('', count(1000)), raw_input_contents: [] };
  typed.inputs[0].contents = { fp32_contents: count(1000) };
  await same('infer-typed', typed, raw(count(1000)));
  const both = [raw(count(6)), raw([6, 5, 4, 3, 2, 1])];
  const two = { model_name: 'id_two', inputs: [input('INPUT0', 2, 3), input('INPUT1', 2, 3)], raw_input_contents: both };
  await same('infer-two', two, ...both);
  await same('infer-large', rawRequest('large', count(1000000)), raw(count(1000000)));
}

async function refused() {
  const unknown = await failure({ ...rawRequest('', count(3)), model_name: 'nobody' });
  check('unknown', unknown.code === grpc.status.NOT_FOUND && unknown.message.includes('nobody'), unknown);
  console.log('ok unknown');
  const wrong = rawRequest('', count(3));
  wrong.inputs[0].datatype = 'INT32';
  const error = await failure(wrong);
  check('wrong-type', error.code === grpc.status.INVALID_ARGUMENT, error);
  console.log('ok wrong-type');
  check('deadline', (await call(server, 'ServerReady', {}, { deadline: Date.now() + 30000 })).ready);
  console.log('ok deadline');
}

function stream() {
  return new Promise((resolve, reject) => {
    const answers = [];
    const calls = server.ModelStreamInfer();
    calls.on('data', (answer) => answers.push(answer));
    calls.on('error', reject);
    calls.on('end', () => resolve(answers));
    count(50).forEach((i) => {
      calls.write({ ...rawRequest(String(i), [i]), ...(i === 24 ? { model_name: 'nobody' } : {}) });
    });
    calls.end();
  });
}

async function streamed() {
  const answers = await stream();
  check('stream', answers.length === 50, answers.length);
  answers.forEach((answer, i) => {
    if (i === 24) {
      check('stream', answer.error_message.includes('nobody'), answer);
      return;
    }
    check('stream', answer.error_message === '' && answer.infer_response.id === String(i), answer);
    check('stream', raw([i]).equals(answer.infer_response.raw_output_contents[0]), answer);
  });
  console.log('ok stream');
}

async function main() {
  await about();
  await infer();
  await refused();
  await streamed();
  server.close();
  health.close();
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
