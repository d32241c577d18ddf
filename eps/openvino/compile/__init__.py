"""A partition to a compiled OpenVINO model: conversion, rewrites, and the nodes it refuses."""
